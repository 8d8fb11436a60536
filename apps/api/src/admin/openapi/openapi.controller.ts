import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Controller, Get, Header } from '@nestjs/common';
import { packageRoot } from '#runtime/process-info.js';
import { DOCS_PAGE } from './docs-page.js';

/** Where `generate` writes it, and where it is read from. */
export const openapiFile = (): string => join(packageRoot(), 'docs/reference/openapi.json');

/** The description of management, as it was generated, and as a page that fetches nothing from elsewhere. */
@Controller('admin')
export class OpenapiController {
  @Get('openapi.json')
  @Header('content-type', 'application/json; charset=utf-8')
  document(): string {
    return readFileSync(openapiFile(), 'utf8');
  }

  @Get('docs')
  @Header('content-type', 'text/html; charset=utf-8')
  @Header(
    'content-security-policy',
    "default-src 'none'; connect-src 'self'; script-src 'unsafe-inline'; style-src 'unsafe-inline'",
  )
  docs(): string {
    return DOCS_PAGE;
  }
}
