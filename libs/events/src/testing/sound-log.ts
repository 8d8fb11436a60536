import { checkInvariants, type Violation } from '../check/invariants.js';
import { openEventLog } from '../connect.js';

/** What is wrong with the log at this address, for a test to expect nothing of before it ends. */
export async function violationsAt(url: string, options: { atRest: boolean }): Promise<readonly Violation[]> {
  const log = openEventLog({ url, by: 'check', now: Date.now });
  try {
    return await checkInvariants(log, options);
  } finally {
    await log.close();
  }
}
