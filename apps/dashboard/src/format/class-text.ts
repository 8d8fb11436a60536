import { count, counted, shortId } from './figures.js';

/**
 * A placement class as a person reads it, of the key that the log has: `F16 · RAM · 8,192 tokens × 1 slot · KV cache f16`.
 * A key of another shape is shown as it is.
 */
export function classText(key: string): string {
  const parts = key.split('|');
  if (parts.length !== 10) return key;
  const [artifact = '', devices = '', gpuLayers = '', moeLayers = '', kvType = '', context = '', slots = ''] =
    parts;
  const number = (text: string) => Number(text.replace(/^\D+/, ''));
  const [cards = ''] = devices.split(':');
  const where =
    cards === ''
      ? 'RAM'
      : `${counted(number(gpuLayers), 'layer')} on ${cards.split('+').map(shortId).join(' and ')}`;
  return [
    artifact,
    where,
    ...(number(moeLayers) > 0 ? [`experts of ${counted(number(moeLayers), 'layer')} in RAM`] : []),
    `${count(number(context))} tokens × ${counted(number(slots), 'slot')}`,
    `KV cache ${kvType}`,
  ].join(' · ');
}
