import type { DeviceId } from '#domain/ids.js';
import type { BytesByDevice } from '../charges.js';
import {
  type CallOutcome,
  type LoadOrder,
  type LoadOutcome,
  loadSecondsFrom,
  type Scenario,
  type SimCall,
  type SimModel,
} from './model.js';
import { FileCache } from './file-cache.js';
import { Timeline } from './timeline.js';

export interface SimResident {
  readonly id: number;
  readonly box: number;
  readonly model: number;
  readonly bytes: BytesByDevice;
  readonly slots: number;
  readonly seconds: number | undefined;
  readonly tokenSeconds: number | undefined;
  readonly orderedMs: number;
  phase: 'planned' | 'loading' | 'ready' | 'gone';
  leaving: boolean;
  readyMs: number;
  /** When a call last began or ended on it, or when it became ready. */
  usedMs: number;
  readonly running: Set<SimCall>;
  /** Calls given to it that wait for one of its slots. */
  readonly queued: SimCall[];
  /** Victims that it waits for. */
  readonly waitsFor: Set<number>;
}

/** What a policy is told. */
export interface WorldListener {
  loadStarted?(resident: SimResident): void;
  ready?(resident: SimResident, seconds: number): void;
  loadFailed?(resident: SimResident, seconds: number): void;
  gone?(resident: SimResident): void;
  arrived?(call: SimCall): void;
  began?(call: SimCall, resident: SimResident): void;
  ended?(outcome: CallOutcome, resident: SimResident): void;
}

type Happening =
  | { readonly kind: 'arrival'; readonly call: SimCall }
  | { readonly kind: 'end'; readonly call: SimCall; readonly resident: SimResident }
  | { readonly kind: 'loaded'; readonly resident: SimResident; readonly load: LoadOutcome }
  | { readonly kind: 'wake' };

/**
 * The modelled fleet in time: calls arrive, residents load one at a time per box, serve and go. It takes orders and
 * checks that they are possible: no device is ever over its size, and nothing that serves is stopped.
 */
export class World {
  nowMs: number;
  readonly residents = new Map<number, SimResident>();
  /** Calls that no resident has been given, in order of arrival. */
  readonly waiting = new Set<SimCall>();
  readonly outcomes: CallOutcome[] = [];
  readonly loads: LoadOutcome[] = [];
  readonly scenario: Scenario;
  readonly #timeline = new Timeline<Happening>();
  readonly #used: Map<DeviceId, number>[];
  readonly #caches: FileCache[];
  readonly #loaders: { current?: SimResident; readonly queue: SimResident[] }[];
  readonly #loadsOf: number[];
  readonly #began = new Map<number, number>();
  #listener: WorldListener = {};
  #nextId = 1;
  #open: number;

  constructor(scenario: Scenario) {
    this.scenario = scenario;
    this.nowMs = scenario.calls[0]?.atMs ?? 0;
    this.#open = scenario.calls.length;
    this.#used = scenario.boxes.map(() => new Map<DeviceId, number>());
    this.#caches = scenario.boxes.map((box) => new FileCache(box.fileCacheBytes));
    this.#loaders = scenario.boxes.map(() => ({ queue: [] }));
    this.#loadsOf = scenario.models.map(() => 0);
    for (const call of scenario.calls) this.#timeline.add(call.atMs, { kind: 'arrival', call });
  }

  listen(listener: WorldListener): void {
    this.#listener = listener;
  }

  /** Calls that have neither ended nor been refused. */
  get open(): number {
    return this.#open;
  }

  model(index: number): SimModel {
    const model = this.scenario.models[index];
    if (!model) throw new RangeError(`there is no model ${index}`);
    return model;
  }

  /** Everything that happens at the next moment; false when nothing is to come. */
  advance(): boolean {
    const at = this.#timeline.nextMs;
    if (at === undefined) return false;
    this.nowMs = at;
    while (this.#timeline.nextMs === at) {
      const happening = this.#timeline.take();
      if (happening) this.#happen(happening);
    }
    return true;
  }

  beganMs(call: SimCall): number | undefined {
    return this.#began.get(call.index);
  }

  wakeAt(atMs: number): void {
    this.#timeline.add(Math.max(this.nowMs + 1, Math.ceil(atMs)), { kind: 'wake' });
  }

  freeBytes(box: number, deviceId: DeviceId): number {
    const total = this.scenario.boxes[box]?.devices.find((d) => d.deviceId === deviceId)?.totalBytes ?? 0;
    return total - (this.#used[box]?.get(deviceId) ?? 0);
  }

  /** A load is under way or ordered on the box. */
  isLoading(box: number): boolean {
    for (const r of this.residents.values())
      if (r.box === box && (r.phase === 'planned' || r.phase === 'loading')) return true;
    return false;
  }

  isIdle(resident: SimResident): boolean {
    return resident.running.size === 0 && resident.queued.length === 0;
  }

  /** A resident that is there and ready from the beginning. */
  place(order: Omit<LoadOrder, 'victims'>): SimResident {
    const resident = this.#resident({ ...order, victims: [] });
    resident.phase = 'ready';
    resident.readyMs = this.nowMs;
    this.#take(resident, 1);
    return resident;
  }

  /** @param known told of the resident before the load begins */
  load(order: LoadOrder, known: (resident: SimResident) => void = () => undefined): SimResident {
    const resident = this.#resident(order);
    known(resident);
    for (const id of order.victims) {
      const victim = this.residents.get(id);
      if (victim?.phase !== 'ready') throw new Error(`victim ${id} is not ready`);
      victim.leaving = true;
    }
    for (const id of order.victims) this.#goIfIdle(id);
    this.#enqueueLoad(resident);
    return resident;
  }

  #resident(order: LoadOrder): SimResident {
    const resident: SimResident = {
      id: this.#nextId++,
      box: order.box,
      model: order.model,
      bytes: order.bytes,
      slots: order.slots,
      seconds: order.seconds,
      tokenSeconds: order.tokenSeconds,
      orderedMs: this.nowMs,
      phase: 'planned',
      leaving: false,
      readyMs: 0,
      usedMs: this.nowMs,
      running: new Set(),
      queued: [],
      waitsFor: new Set(order.victims),
    };
    this.residents.set(resident.id, resident);
    return resident;
  }

  evict(resident: SimResident): void {
    if (resident.phase !== 'ready') throw new Error(`resident ${resident.id} is ${resident.phase}`);
    resident.leaving = true;
    this.#goIfIdle(resident.id);
  }

  /** Gives a call to a resident: it begins now, or when one of its slots frees. */
  serve(call: SimCall, resident: SimResident): void {
    if (!this.waiting.delete(call)) throw new Error(`call ${call.index} does not wait`);
    if (resident.leaving || resident.phase === 'gone')
      throw new Error(`resident ${resident.id} takes no calls`);
    resident.queued.push(call);
    this.#begin(resident);
  }

  refuse(call: SimCall, code: string): void {
    if (!this.waiting.delete(call)) throw new Error(`call ${call.index} does not wait`);
    this.#open -= 1;
    this.outcomes.push({ call, refused: { code, atMs: this.nowMs } });
  }

  #happen(happening: Happening): void {
    switch (happening.kind) {
      case 'arrival':
        this.waiting.add(happening.call);
        this.#listener.arrived?.(happening.call);
        return;
      case 'end':
        this.#end(happening.call, happening.resident);
        return;
      case 'loaded':
        this.#loaded(happening.resident, happening.load);
        return;
      case 'wake':
        return;
    }
  }

  #begin(resident: SimResident): void {
    while (
      resident.phase === 'ready' &&
      resident.running.size < resident.slots &&
      resident.queued.length > 0
    ) {
      const call = resident.queued.shift();
      if (!call) return;
      resident.running.add(call);
      resident.usedMs = this.nowMs;
      this.#began.set(call.index, this.nowMs);
      this.#listener.began?.(call, resident);
      const { totalMs } = serviceOf(this.model(call.model), call, resident);
      this.#timeline.add(this.nowMs + Math.max(1, Math.round(totalMs)), { kind: 'end', call, resident });
    }
  }

  #end(call: SimCall, resident: SimResident): void {
    resident.running.delete(call);
    resident.usedMs = this.nowMs;
    this.#open -= 1;
    const startMs = this.#began.get(call.index) ?? call.atMs;
    this.#began.delete(call.index);
    const firstMs = serviceOf(this.model(call.model), call, resident).firstByteMs;
    const firstByteMs = Math.min(this.nowMs, startMs + Math.round(firstMs));
    const outcome = { call, startMs, firstByteMs, endMs: this.nowMs };
    this.outcomes.push(outcome);
    this.#begin(resident);
    this.#listener.ended?.(outcome, resident);
    if (resident.leaving) this.#goIfIdle(resident.id);
  }

  #goIfIdle(id: number): void {
    const resident = this.residents.get(id);
    if (!resident?.leaving || !this.isIdle(resident)) return;
    this.residents.delete(id);
    resident.phase = 'gone';
    this.#take(resident, -1);
    this.#listener.gone?.(resident);
    for (const other of this.residents.values()) {
      if (other.phase === 'planned' && other.waitsFor.delete(id)) this.#enqueueLoad(other);
    }
  }

  #enqueueLoad(resident: SimResident): void {
    if (resident.waitsFor.size > 0) return;
    const loader = this.#loaders[resident.box];
    if (!loader || loader.queue.includes(resident) || loader.current === resident) return;
    loader.queue.push(resident);
    this.#startLoad(resident.box);
  }

  #startLoad(box: number): void {
    const loader = this.#loaders[box];
    if (!loader || loader.current) return;
    const resident = loader.queue.shift();
    if (!resident) return;
    loader.current = resident;
    resident.phase = 'loading';
    const { fileBytes } = this.model(resident.model);
    const from = this.#caches[box]?.touch(resident.model, fileBytes) ? 'ram' : 'disk';
    const nth = this.#loadsOf[resident.model] ?? 0;
    this.#loadsOf[resident.model] = nth + 1;
    const { load } = this.scenario;
    const seconds =
      (resident.seconds ?? loadSecondsFrom(load, from, fileBytes)) * load.noise(resident.model, nth);
    const failed = [...resident.bytes].some(([deviceId, bytes]) => bytes > this.freeBytes(box, deviceId));
    if (!failed) this.#take(resident, 1);
    const outcome: LoadOutcome = {
      model: resident.model,
      box,
      from,
      orderedMs: resident.orderedMs,
      startMs: this.nowMs,
      endMs: this.nowMs + Math.max(1, Math.round(seconds * 1000)),
      fileBytes,
      failed,
    };
    this.loads.push(outcome);
    this.#timeline.add(outcome.endMs, { kind: 'loaded', resident, load: outcome });
    this.#listener.loadStarted?.(resident);
  }

  #loaded(resident: SimResident, load: LoadOutcome): void {
    const loader = this.#loaders[resident.box];
    if (loader) delete loader.current;
    const seconds = (load.endMs - load.startMs) / 1000;
    if (load.failed) {
      this.residents.delete(resident.id);
      resident.phase = 'gone';
      for (const call of resident.queued.splice(0)) this.waiting.add(call);
      this.#listener.loadFailed?.(resident, seconds);
    } else {
      resident.phase = 'ready';
      resident.readyMs = this.nowMs;
      resident.usedMs = this.nowMs;
      this.#listener.ready?.(resident, seconds);
      this.#begin(resident);
    }
    this.#startLoad(resident.box);
  }

  #take(resident: SimResident, sign: 1 | -1): void {
    const used = this.#used[resident.box];
    for (const [deviceId, bytes] of resident.bytes) {
      used?.set(deviceId, (used.get(deviceId) ?? 0) + sign * bytes);
      if (this.freeBytes(resident.box, deviceId) < 0)
        throw new Error(`box ${resident.box} is over the size of ${deviceId} at ${this.nowMs}`);
    }
  }
}

/** From the beginning of the prompt to the first byte and to the end of the output. */
export function serviceOf(
  model: SimModel,
  call: SimCall,
  resident?: Pick<SimResident, 'tokenSeconds'>,
): { readonly firstByteMs: number; readonly totalMs: number } {
  const { took } = call;
  if (took) {
    const ratio = took.tokenSeconds && resident?.tokenSeconds ? resident.tokenSeconds / took.tokenSeconds : 1;
    return { firstByteMs: took.firstByteMs * ratio, totalMs: took.totalMs * ratio };
  }
  const promptMs = call.promptTokens * model.promptMsPerToken;
  return {
    firstByteMs: promptMs + model.decodeMsPerToken,
    totalMs: promptMs + call.outputTokens * model.decodeMsPerToken,
  };
}
