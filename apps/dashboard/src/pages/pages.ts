import type { Component } from 'svelte';
import type { Place } from '../places.js';
import Calls from './calls.svelte';
import Decisions from './decisions.svelte';
import Keys from './keys.svelte';
import Missing from './missing.svelte';
import Models from './models.svelte';
import Overview from './overview.svelte';
import Playground from './playground.svelte';
import Settings from './settings.svelte';
import Timeline from './timeline.svelte';
import WhatIf from './what-if.svelte';

export interface Page {
  /** First part of its address. */
  readonly name: string;
  readonly title: string;
  readonly inNav: boolean;
  readonly component: Component<{ place: Place }>;
}

export const PAGES: readonly Page[] = [
  { name: 'overview', title: 'Overview', inNav: true, component: Overview },
  { name: 'timeline', title: 'Timeline', inNav: true, component: Timeline },
  { name: 'decisions', title: 'Decisions', inNav: true, component: Decisions },
  { name: 'calls', title: 'Calls', inNav: true, component: Calls },
  { name: 'models', title: 'Models', inNav: true, component: Models },
  { name: 'playground', title: 'Playground', inNav: true, component: Playground },
  { name: 'keys', title: 'Keys', inNav: true, component: Keys },
  { name: 'settings', title: 'Settings', inNav: true, component: Settings },
  { name: 'what-if', title: 'What if', inNav: true, component: WhatIf },
];
const MISSING: Page = { name: 'missing', title: 'No such page', inNav: false, component: Missing };

export const pageOf = (name: string): Page => PAGES.find((page) => page.name === name) ?? MISSING;
