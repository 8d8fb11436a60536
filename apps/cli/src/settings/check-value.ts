import { parseBytes } from '#domain/units.js';
import type { Setting } from './table.js';

/**
 * What is wrong with a value, as the end of a sentence that starts with the name of the setting; undefined when it may stand.
 * Paths are not looked at here: whether they exist is for whoever uses them.
 */
export function faultOf(setting: Setting, value: string): string | undefined {
  const { kind } = setting;
  switch (kind.type) {
    case 'path':
      return value.includes('\0') ? 'must be a path' : undefined;
    case 'host':
      return /^[\w.:%-]+$/.test(value) ? undefined : `must be an address or a host name, not "${value}"`;
    case 'whole': {
      const parsed = Number(value);
      return /^\d+$/.test(value) && parsed >= kind.min && parsed <= kind.max
        ? undefined
        : `must be a whole number from ${kind.min} to ${kind.max}, not "${value}"`;
    }
    case 'size': {
      const parsed = parseBytes(value);
      return parsed !== undefined && parsed > 0 ? undefined : `must be a size such as 12GiB, not "${value}"`;
    }
    case 'url': {
      const scheme = /^([a-z+]+):\/\/\S+$/i.exec(value)?.[1]?.toLowerCase();
      return scheme !== undefined && kind.schemes.includes(scheme)
        ? undefined
        : `must be a URL such as ${kind.example}, not "${maskUrl(value)}"`;
    }
    case 'choice':
      return kind.choices.includes(value)
        ? undefined
        : `must be one of ${kind.choices.join(', ')}, not "${value}"`;
  }
}

/** The same URL with its password and every value that is named like a secret replaced. */
export function maskUrl(text: string): string {
  return text
    .replace(/(:\/\/[^/?#\s]*?):[^/?#\s]*@/, '$1:***@')
    .replace(/([?&][^=&]*(?:password|secret|token|key)[^=&]*=)[^&#\s]*/gi, '$1***');
}
