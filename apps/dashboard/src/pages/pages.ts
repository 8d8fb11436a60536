import type { Component } from 'svelte';
import type { Place } from '../places.js';
import Calls from './calls.svelte';
import Decisions from './decisions.svelte';
import Keys from './keys.svelte';
import Missing from './missing.svelte';
import Models from './models.svelte';
import Overview from './overview.svelte';
import Playground from './playground.svelte';
import Replay from './replay.svelte';
import Settings from './settings.svelte';
import Timeline from './timeline.svelte';
import WhatIf from './what-if.svelte';

export interface Page {
  /** First part of its address. */
  readonly name: string;
  readonly title: string;
  readonly component: Component<{ place: Place }>;
}

/** In the order in which they are named at the top. */
export const PAGES: readonly Page[] = [
  { name: 'overview', title: 'Overview', component: Overview },
  { name: 'timeline', title: 'Timeline', component: Timeline },
  { name: 'decisions', title: 'Decisions', component: Decisions },
  { name: 'calls', title: 'Calls', component: Calls },
  { name: 'models', title: 'Models', component: Models },
  { name: 'playground', title: 'Playground', component: Playground },
  { name: 'keys', title: 'Keys', component: Keys },
  { name: 'settings', title: 'Settings', component: Settings },
  { name: 'what-if', title: 'What if', component: WhatIf },
  { name: 'replay', title: 'Replay', component: Replay },
];
const MISSING: Page = { name: 'missing', title: 'No such page', component: Missing };

export const pageOf = (name: string): Page => PAGES.find((page) => page.name === name) ?? MISSING;
