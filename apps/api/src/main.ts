import { readConfig } from '#runtime/config.js';
import { runProcess } from '#runtime/lifecycle.js';
import { createLogger } from '#runtime/logger.js';
import { startApi } from './api.js';

const log = createLogger('api');
await runProcess('api', log, () => startApi(readConfig(process.env), log));
