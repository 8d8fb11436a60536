import type { DecisionGiven } from '#domain/events/worker-events.js';
import { residentsById } from './charges.js';
import type { PlacementInput } from './contract.js';
import { memo } from './memo.js';
import { defaultSettings, type SettingsPatch } from './setting-levels.js';
import type { EffectiveSettings } from './settings.js';

/** More residents than this have not served at once on one machine; beyond it the record says less. */
const MOST_ACTIVE = 96;

/** What of a decision's input the log does not hold already. */
export function givenOf(input: PlacementInput): DecisionGiven {
  const { ticket, unprojectable } = input;
  const activity: DecisionGiven['activity'][number][] = [];
  for (const { residentId } of residentsById(input.worker)) {
    const {
      callsInFlight = 0,
      lastCallEndedAtMs,
      freeInSeconds,
      alsoElsewhere,
    } = input.activity.get(residentId) ?? {};
    if (callsInFlight === 0 && lastCallEndedAtMs === undefined && !alsoElsewhere) continue;
    if (activity.length === MOST_ACTIVE) break;
    activity.push({
      residentId,
      calls: callsInFlight,
      ...(lastCallEndedAtMs === undefined ? {} : { lastEndedAt: iso(lastCallEndedAtMs) }),
      ...(freeInSeconds === undefined ? {} : { freeInSeconds }),
      ...(alsoElsewhere ? { alsoElsewhere } : {}),
    });
  }
  return {
    settings: overDefaults(input.settings),
    ...(ticket
      ? {
          call: {
            arrivedAt: iso(ticket.arrivedAtMs),
            promptTokens: ticket.promptTokens,
            ...(ticket.maxTokens === undefined ? {} : { maxTokens: ticket.maxTokens }),
            ...(ticket.background ? { background: true as const } : {}),
          },
        }
      : {}),
    activity,
    ...(unprojectable.size > 0 ? { unprojectable: [...unprojectable] } : {}),
  };
}

/** More residents and calls than are told of between two of their calls. */
const MOST_KEPT = 4096;
const keptIso = new Map<number, string>();

/** When a resident served last is told by every decision, and stays the same until it serves again. */
function iso(ms: number): string {
  const known = keptIso.get(ms);
  if (known !== undefined) return known;
  const text = new Date(ms).toISOString();
  if (keptIso.size >= MOST_KEPT) keptIso.clear();
  keptIso.set(ms, text);
  return text;
}

/** The knobs that are not as they are by default. */
const overDefaults = memo((settings: EffectiveSettings): SettingsPatch => {
  const defaults = defaultSettings as unknown as Readonly<Record<string, unknown>>;
  return Object.fromEntries(
    Object.entries(settings).filter(
      ([name, value]) => value !== defaults[name] && JSON.stringify(value) !== JSON.stringify(defaults[name]),
    ),
  );
});
