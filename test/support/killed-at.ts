import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

interface Moment {
  /** The process of an engine is there, and nothing tells of it yet; or its state file is, for the so many-th time. */
  readonly when: 'spawned' | 'kept';
  readonly time?: number;
  /** So many of the ports that it finds free are held, so that engines cannot have them. */
  readonly takesPorts?: number;
}

/** Arguments of node with which an agent ends itself, as a power cut would, at a moment that no test could hit from outside. */
export function killedAt(home: string, { when, time = 1, takesPorts = 0 }: Moment): readonly string[] {
  const shim = join(home, 'killed-at.mjs');
  writeFileSync(
    shim,
    `import childProcess from 'node:child_process';
     import fs from 'node:fs';
     import net from 'node:net';
     import { syncBuiltinESMExports } from 'node:module';
     let left = ${time};
     const die = (when) => when === '${when}' && --left === 0 && process.kill(process.pid, 'SIGKILL');
     const { spawn } = childProcess;
     childProcess.spawn = (...args) => {
       const child = spawn(...args);
       if (args[2]?.env?.BERTH_ENGINE_MARK) child.once('spawn', () => die('spawned'));
       return child;
     };
     const { renameSync } = fs;
     fs.renameSync = (from, to) => {
       renameSync(from, to);
       if (/engines.[^/]+[.]json$/.test(to)) die('kept');
     };
     let takes = ${takesPorts};
     const { close } = net.Server.prototype;
     net.Server.prototype.close = function (done) {
       if (takes-- <= 0) return close.call(this, done);
       done?.();
       return this;
     };
     syncBuiltinESMExports();`,
  );
  return [`--import=file://${shim}`];
}
