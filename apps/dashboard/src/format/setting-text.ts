/** A setting as a person writes it: words as they are, everything else as JSON. */
export const settingText = (value: unknown): string =>
  typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value);

/** The same to be read: a list without its brackets. */
export const settingShown = (value: unknown): string =>
  Array.isArray(value) ? value.map(settingText).join(', ') || 'none' : settingText(value);

/**
 * Reads what a person wrote for a setting: JSON where it is that (`8192`, `true`, `["ram-only"]`), a list where there are
 * commas, else the word itself. Empty takes the setting back (null).
 */
export function settingValue(text: string): unknown {
  const trimmed = text.trim();
  if (trimmed === '') return null;
  try {
    return JSON.parse(trimmed) as unknown;
  } catch {
    // No JSON: words.
    return trimmed.includes(',')
      ? trimmed
          .split(',')
          .map((part) => part.trim())
          .filter(Boolean)
      : trimmed;
  }
}
