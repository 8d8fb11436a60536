import { mount } from 'svelte';
import App from './app.svelte';
import 'uplot/dist/uPlot.min.css';
import './styles/app.css';

const target = document.getElementById('app');
if (!target) throw new Error('index.html has no element #app.');
mount(App, { target });
