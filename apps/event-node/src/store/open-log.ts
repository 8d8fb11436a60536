import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { writePrivateFile } from '../access/private-files.js';
import { messageOf } from '../errors.js';
import { isDamage } from './database.js';
import { EventStore, type EventStoreOptions } from './event-store.js';
import { setAside } from './salvage.js';

const LOG_FILE = 'log.db';
const MARK = 'log-damaged';

export const logFile = (dataDir: string): string => join(dataDir, LOG_FILE);

/**
 * Opens the log of a data folder. A damaged file is set aside and its sound beginning taken over; what that means is
 * said. Damage that shows only while the node runs leaves a mark, and is treated so at the next start.
 */
export function openLog(dataDir: string, options: Omit<EventStoreOptions, 'file'>): EventStore {
  const file = logFile(dataDir);
  const mark = join(dataDir, MARK);
  const full: EventStoreOptions = {
    ...options,
    file,
    onDamage: (error) => {
      writePrivateFile(mark, `${messageOf(error)}\n`);
      options.onDamage(error);
    },
  };
  if (existsSync(mark)) {
    setAside(dataDir, file, 'it was found damaged while in use', options);
    rmSync(mark);
    return new EventStore(full);
  }
  try {
    return new EventStore(full);
  } catch (error) {
    if (!isDamage(error)) throw error;
    setAside(dataDir, file, messageOf(error), options);
    return new EventStore(full);
  }
}
