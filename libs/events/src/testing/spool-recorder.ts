/** A process that records numbered call events until it is killed: `spool-recorder.js URL DIR STREAM ATTEMPT`. */
import { openEventLog } from '../connect.js';
import { openSpool } from '../spool.js';
import { SAMPLES } from './samples.js';

const [url = '', dir = '', stream = '', attempt = '0'] = process.argv.slice(2);
const log = openEventLog({ url, by: 'recorder', now: Date.now });
const spool = openSpool({ dir, log, now: Date.now });
const cause = { correlationId: 'c', causationId: 'c' };
/** What was recorded this long ago must survive anything. */
const SETTLED_MS = 500;

let made = 0;
setInterval(() => {
  for (let i = 0; i < 20; i++) {
    const n = made++;
    spool.record(stream, {
      id: `00000000-0000-4000-8000-${attempt.padStart(4, '0')}${n.toString(16).padStart(8, '0')}`,
      event: { type: 'CallStarted', data: { ...SAMPLES.CallStarted, promptBytes: n } },
      cause,
    });
  }
  const count = made;
  setTimeout(() => process.send?.({ settled: count }), SETTLED_MS);
}, 5);
process.on('disconnect', () => process.exit(0));
