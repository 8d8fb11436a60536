import type { AdminClient } from './admin-client.js';
import type { CallRow } from './rows.js';

const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;
/** How far back a prefix is looked for. */
const LOOKED_AT = 2_000;

/**
 * The id of a call: as it stands, from a unique start of it, or of the newest call for `last`.
 * @throws Error that names the calls which an ambiguous start could mean, or how many were looked at
 */
export async function findCall(client: AdminClient, given: string): Promise<string> {
  if (UUID.test(given)) return given;
  const calls = await client.list<CallRow>('/admin/calls', given === 'last' ? 1 : LOOKED_AT);
  const [newest] = calls;
  if (newest === undefined)
    throw new Error('There has been no call yet. Send one to /v1/chat/completions and ask again.');
  if (given === 'last') return newest.callId;
  const fitting = calls.filter(({ callId }) => callId.startsWith(given.toLowerCase()));
  const [only, ...others] = fitting;
  if (only === undefined) {
    throw new Error(
      `None of the last ${calls.length} calls starts with "${given}". \`berth explain last\` takes the newest.`,
    );
  }
  if (others.length > 0) {
    const names = fitting
      .slice(0, 5)
      .map(({ callId, modelKey, receivedAt }) => `  ${callId}  ${modelKey}  ${receivedAt}`);
    throw new Error(
      `${fitting.length} calls start with "${given}"; write more of the id:\n${names.join('\n')}${fitting.length > 5 ? '\n  …' : ''}`,
    );
  }
  return only.callId;
}
