import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const css = readFileSync(new URL('colours.css', import.meta.url), 'utf8');
const [light = '', dark = ''] = css.split(":root[data-theme='dark']");
const coloursOf = (text: string) =>
  new Map([...text.matchAll(/--([\w-]+): (#[\da-f]{6})/g)].map(([, name = '', value = '']) => [name, value]));

/** Relative luminance as WCAG 2.2 defines it. */
function luminance(hex: string): number {
  const channel = (at: number) => {
    const part = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
}
function contrast(a: string, b: string): number {
  const [low = 0, high = 0] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

const WORDS = ['ink', 'muted', 'link', 'good', 'busy', 'leaving', 'bad', 'other'];

it.each([
  ['light', coloursOf(light)],
  ['dark', new Map([...coloursOf(light), ...coloursOf(dark)])],
])(
  'has words that can be read on every ground, and edges of fields that can be seen: %s',
  (_theme, colours) => {
    const of = (name: string) => colours.get(name) ?? '#000000';
    for (const word of WORDS) {
      for (const ground of ['surface', 'ground', 'well', 'hover'])
        expect([word, ground, contrast(of(word), of(ground)) >= 4.5]).toEqual([word, ground, true]);
    }
    for (const ground of ['warn-ground', 'bad-ground', 'info-ground'])
      expect([ground, contrast(of('ink'), of(ground)) >= 7]).toEqual([ground, true]);
    expect(contrast(of('on-main'), of('main'))).toBeGreaterThanOrEqual(4.5);
    expect(contrast(of('field-edge'), of('surface'))).toBeGreaterThanOrEqual(3);
    expect(contrast(of('focus'), of('ground'))).toBeGreaterThanOrEqual(3);
  },
);
