import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { EngineStateFile } from '../ports.js';

/** What lies in `<home>/engines`: a state file, a log and, for the built-in engine, a plan per process. All 0600. */
export class EngineFolder {
  readonly path: string;

  constructor(home: string) {
    this.path = join(home, 'engines');
    this.make();
  }

  /** Again before each launch: somebody may have removed it, and what runs needs none of it. */
  make(): void {
    mkdirSync(this.path, { recursive: true, mode: 0o700 });
  }

  logFile(residentId: string): string {
    return join(this.path, `${residentId}.log`);
  }

  planFile(residentId: string): string {
    return join(this.path, `${residentId}.plan`);
  }

  stateFile(residentId: string): string {
    return join(this.path, `${residentId}.json`);
  }

  writePlan(residentId: string, plan: object): string {
    const file = this.planFile(residentId);
    this.make();
    writeWhole(file, plan);
    return file;
  }

  writeState(state: EngineStateFile): void {
    this.make();
    writeWhole(this.stateFile(state.residentId), state);
  }

  /** By its state file alone an engine is found by the next agent. */
  knows(residentId: string): boolean {
    return existsSync(this.stateFile(residentId));
  }

  /** After the process is gone. The log stays, for whoever wants to know why. */
  remove(residentId: string): void {
    rmSync(this.stateFile(residentId), { force: true });
    rmSync(this.planFile(residentId), { force: true });
  }
}

/** A reader sees the old content or the new, never a part. */
function writeWhole(file: string, content: object): void {
  const part = `${file}.part`;
  writeFileSync(part, JSON.stringify(content), { mode: 0o600 });
  renameSync(part, file);
}
