import 'reflect-metadata';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import * as prettier from 'prettier';
import { packageRoot } from '#runtime/process-info.js';
import { QueueController } from '../../live/queue.controller.js';
import { ADMIN_CONTROLLERS } from '../admin.module.js';
import { documentOf } from './document.js';
import { openapiFile } from './openapi.controller.js';

/** Writes the description of management: `node dist/apps/api/src/admin/openapi/generate.js [--check]`. */
const file = openapiFile();
const { version } = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')) as {
  version: string;
};
const made: unknown = JSON.parse(
  JSON.stringify(documentOf([...ADMIN_CONTROLLERS, QueueController], version)),
);
if (process.argv.includes('--check')) {
  if (!isDeepStrictEqual(made, JSON.parse(readFileSync(file, 'utf8')))) {
    process.stderr.write(
      'docs/reference/openapi.json is stale: run node dist/apps/api/src/admin/openapi/generate.js\n',
    );
    process.exitCode = 1;
  }
} else {
  const options = { ...(await prettier.resolveConfig(file)), parser: 'json' };
  writeFileSync(file, await prettier.format(JSON.stringify(made), options));
}
