import type {
  Considered,
  PlacementDecidedData,
  PlacementRefusedData,
  Working,
} from '#domain/events/worker-events.js';
import { type DeviceId, RAM } from '#domain/ids.js';
import type { Basis, NeedTerm, NeedTermName, Rung } from '#domain/placement-terms.js';
import { formatBytes, formatSeconds } from '#domain/units.js';
import { termsByDevice } from './charges.js';
import { columns, count, wrap } from './text.js';

export const RUNG_WORDS: Readonly<Record<Rung, string>> = {
  'gpu-only': 'all of it on accelerators',
  moe: 'experts in RAM, the rest on an accelerator',
  '4bit': 'the 4-bit form on accelerators',
  'ram-only': 'all of it in RAM',
  'max-ram': 'RAM first, the overflow on accelerators',
  'max-gpu': 'accelerators first, the rest in RAM',
};

export const TERM_WORDS: Readonly<Record<NeedTermName, string>> = {
  weights: 'weights',
  kv: 'KV cache',
  compute: 'work buffers',
  state: 'recurrent state',
  adapter: 'adapter',
  projector: 'projector',
  process: 'process itself',
  promptCache: 'prompt cache',
};

export const BASIS_WORDS: Readonly<Record<Basis, string>> = {
  measured: 'measured',
  'measured+header': 'measured at another setting, adapted by the header',
  projected: 'projected by the engine without loading',
  header: 'from the file header',
  estimated: 'estimated',
  unknown: 'unknown',
};

/** A decision or a refusal as `berth explain` prints it: at most 100 columns, every figure with its basis. */
export function renderDecision(data: PlacementDecidedData | PlacementRefusedData): string {
  const lines = 'victims' in data ? decidedLines(data) : refusedLines(data);
  return [...lines, ...workingLines(data)].join('\n') + '\n';
}

function decidedLines(data: PlacementDecidedData): readonly string[] {
  const { contract, predicted } = data;
  const place = [RAM, ...data.devices].filter((d) => data.need.some((t) => t.deviceId === d)).map(deviceWord);
  const engine = `${contract.engine.kind} (build ${contract.engine.build})`;
  const threads = `${contract.threads} ${contract.threads === 1 ? 'thread' : 'threads'}`;
  const slots = `${contract.slots} ${contract.slots === 1 ? 'slot' : 'slots'} of ${count(contract.contextTokens)} tokens`;
  const split = contract.blocksByDevice
    ?.map((blocks, i, all) => {
      // The output goes with the last blocks, and counts as a layer.
      const output = i === all.length - 1 && contract.gpuLayers > sumOfAll(all) ? ' and the output' : '';
      return `${blocks} blocks${output} on ${deviceWord(contract.devices[i] ?? RAM)}`;
    })
    .join(', ');
  const layers =
    contract.gpuLayers > 0
      ? `, ${contract.gpuLayers} layers on accelerators${split ? ` (${split})` : ''}`
      : '';
  const experts = contract.cpuMoeLayers > 0 ? `, experts of ${contract.cpuMoeLayers} layers in RAM` : '';
  return [
    ...wrap(`Load ${data.modelKey} into ${listed(place)}.`, '  ', ''),
    ...wrap(`Decision ${data.decisionId}, taken ${data.now} ${causeWords(data)}.`, '  ', ''),
    ...(data.forSlots ? wrap(slotWords(data.forSlots), '  ', '') : []),
    '',
    'How',
    ...wrap(
      `artifact ${data.artifact}, placed ${data.rung}: ${RUNG_WORDS[data.rung]}${layers}${experts}`,
      '    ',
      '  ',
    ),
    ...wrap(`engine ${engine}, ${threads}, ${slots}, KV cache ${contract.kvType}`, '    ', '  '),
    '',
    ...needLines(data.need),
    ...roomLines(data),
    ...victimLines(data),
    'Expected',
    ...wrap(
      [
        predicted.readyInSeconds ? `room free in ${formatSeconds(predicted.readyInSeconds)}` : '',
        predicted.loadSeconds === undefined
          ? 'load time unknown'
          : `load ${formatSeconds(predicted.loadSeconds)}`,
        predicted.outputSeconds === undefined
          ? 'output time unknown (no call was measured yet)'
          : `prompt and output ${formatSeconds(predicted.outputSeconds)}`,
      ]
        .filter((part) => part !== '')
        .join(', '),
      '    ',
      '  ',
    ),
    '',
  ];
}

function refusedLines(data: PlacementRefusedData): readonly string[] {
  const times = data.count > 1 ? ` (${data.count} times)` : '';
  return [
    ...wrap(`No place for ${data.modelKey}: ${data.code}${times}.`, '  ', ''),
    ...wrap(`Decision ${data.decisionId}, taken ${data.now} ${causeWords(data)}.`, '  ', ''),
    '',
    'Why',
    ...wrap(data.reason, '    ', '  '),
    '',
    ...roomLines(data),
  ];
}

function slotWords({ waiting, waitSeconds }: NonNullable<PlacementDecidedData['forSlots']>): string {
  const calls = waiting === 1 ? 'the call that waits' : `the last of ${waiting} calls that wait`;
  const wait = formatSeconds(waitSeconds);
  return `Every slot of it is taken on another worker, where ${calls} would have one in ${wait}: so it is loaded here too.`;
}

const causeWords = ({ cause }: Pick<Working, 'cause'>): string =>
  cause.kind === 'call' ? `for call ${cause.callId}` : `for ${cause.kind}`;

const sumOfAll = (numbers: readonly number[]): number => numbers.reduce((sum, n) => sum + n, 0);

/** `a`, `a and b`, `a, b and c`. */
const listed = (words: readonly string[]): string =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1) ?? ''}`;

const deviceWord = (deviceId: DeviceId): string => (deviceId === RAM ? 'RAM' : deviceId);

/** What a plan takes, term by term, with the basis of each figure and the event that it came from. */
export function explainNeed(need: readonly NeedTerm[]): string {
  return needLines(need).slice(0, -1).join('\n') + '\n';
}

function needLines(need: readonly NeedTerm[]): readonly string[] {
  const totals = [...termsByDevice(need)].sort(([a], [b]) => Number(b === RAM) - Number(a === RAM));
  const rows: string[][] = [];
  for (const [deviceId, total] of totals) {
    let first = true;
    for (const t of need.filter((n) => n.deviceId === deviceId)) {
      rows.push([
        first ? `  ${deviceWord(deviceId)}` : '',
        TERM_WORDS[t.term],
        t.bytes === undefined ? '?' : formatBytes(t.bytes),
        BASIS_WORDS[t.basis] + (t.fromEvent === undefined ? '' : ` [${t.fromEvent}]`),
      ]);
      first = false;
    }
    const unknown = need.some((n) => n.deviceId === deviceId && n.bytes === undefined);
    rows.push(['', 'together', formatBytes(total), unknown ? 'without what is unknown' : '']);
  }
  return ['What it takes', ...columns(rows, new Set([2])).flatMap(fold), ''];
}

/** A line that is too long goes on below, further in. */
const fold = (line: string): readonly string[] =>
  line.length <= 100
    ? [line]
    : wrap(line.trimStart(), '      ', line.slice(0, line.length - line.trimStart().length));

function roomLines(data: Working): readonly string[] {
  const rows = data.room.map(({ deviceId, bytes }) => [
    `  ${deviceWord(deviceId)}`,
    bytes === undefined ? 'unknown: nothing is admitted without a reading' : formatBytes(bytes),
  ]);
  return ['What was free', ...columns(rows, new Set()), ''];
}

const LOSS = 'The loss is what its next call would wait longer, weighed by how soon that is expected.';

function victimLines(data: PlacementDecidedData): readonly string[] {
  if (data.victims.length === 0) return ['Who has to go', '  nobody', ''];
  const lines = data.victims.flatMap((v) => {
    const frees = v.frees.map((f) => `${formatBytes(f.bytes)} of ${deviceWord(f.deviceId)}`).join(', ');
    const why =
      v.modelKey === data.modelKey
        ? 'it is replaced by this load'
        : `expected loss ${formatSeconds(v.lossSeconds)}`;
    return wrap(
      `${v.modelKey} frees ${frees === '' ? 'nothing that is known' : frees}; ${why}`,
      '    ',
      '  ',
    );
  });
  const others = data.victims.some((v) => v.modelKey !== data.modelKey);
  const how = data.exact
    ? 'No other choice would cost less, when what is freed beyond the need counts in its favour.'
    : `Chosen in the order "${data.policy.order}", without trying every combination.`;
  return ['Who has to go', ...lines, ...(others ? wrap(`${LOSS} ${how}`, '    ', '  ') : []), ''];
}

function workingLines(data: Working): readonly string[] {
  return [
    ...consideredLines(data),
    ...blockingLines(data),
    ...queueLines(data),
    'Decided from',
    ...data.basedOn.flatMap(({ stream, revision }) =>
      wrap(`${stream} ${revision < 0 ? 'without an event yet' : `up to event ${revision}`}`, '    ', '  '),
    ),
    ...wrap(
      `goal ${data.policy.goal}, eviction order ${data.policy.order}, rules version ${data.policy.version}`,
      '    ',
      '  ',
    ),
    ...wrap(askWords(data), '    ', '  '),
  ];
}

function askWords({ ask }: Working): string {
  const context =
    typeof ask.context === 'object'
      ? `${count(ask.context.min)} to ${count(ask.context.max)} tokens`
      : typeof ask.context === 'number'
        ? `${count(ask.context)} tokens`
        : 'as long as calls need';
  const only = ask.artifact === undefined ? '' : `, artifact ${ask.artifact} only`;
  const rungs = ask.allowedRungs ? `, only as ${ask.allowedRungs.join(' or ')}` : '';
  return `asked: context ${context}, KV cache ${ask.kvType}, ${ask.slots} ${ask.slots === 1 ? 'slot' : 'slots'}${only}${rungs}`;
}

function consideredLines(data: Working): readonly string[] {
  if (data.considered.length === 0) return [];
  const left = data.consideredLeftOut ? [`  and ${data.consideredLeftOut} more`] : [];
  return ['What was looked at', ...data.considered.flatMap(consideredLine), ...left, ''];
}

const OUTCOME_WORDS: Readonly<Record<Considered['outcome'], string>> = {
  chosen: 'chosen',
  admitted: 'possible',
  refused: 'refused',
  'not-offered': 'not offered',
};

function consideredLine(c: Considered): readonly string[] {
  const tokens = c.contextTokens === undefined ? '' : `, ${count(c.contextTokens)} tokens`;
  const cards = c.devices ? ` on ${listed(c.devices)}` : '';
  // Over several memories a sum of what is free says nothing: what one of them lacks is in the reason.
  const all = c.devices ? ' in all' : '';
  const needs = c.needBytes === undefined ? '' : `, takes ${formatBytes(c.needBytes)}${all}`;
  const free = c.roomBytes === undefined || c.devices ? '' : `, ${formatBytes(c.roomBytes)} are free`;
  const seconds =
    c.predictedSeconds === undefined ? '' : `, answer expected after ${formatSeconds(c.predictedSeconds)}`;
  return wrap(
    `${c.artifact} ${c.rung}${cards}${tokens}${needs}${free}${seconds}: ${OUTCOME_WORDS[c.outcome]}, ${c.reason}`,
    '    ',
    '  ',
  );
}

function blockingLines(data: Working): readonly string[] {
  if (data.blocking.length === 0) return [];
  const lines = data.blocking.flatMap((b) => wrap(`${b.modelKey} ${b.reason}`, '    ', '  '));
  return ['Who could not be asked to go', ...lines, ''];
}

function queueLines(data: Working): readonly string[] {
  if (data.queue.length === 0) return [];
  const mine =
    data.cause.kind === 'call'
      ? data.queue.find((q) => data.cause.kind === 'call' && q.callId === data.cause.callId)
      : undefined;
  const place = mine ? `; this call was number ${mine.place}` : '';
  const calls = data.queue.length === 1 ? '1 call waited' : `${data.queue.length} calls waited`;
  return ['The queue', `  ${calls}${place}`, ''];
}
