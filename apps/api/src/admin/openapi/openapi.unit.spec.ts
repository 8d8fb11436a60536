import 'reflect-metadata';
import { readFileSync } from 'node:fs';
import { Controller, Get } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { QueueController } from '../../live/queue.controller.js';
import { ADMIN_CONTROLLERS } from '../admin.module.js';
import { DOCS_PAGE } from './docs-page.js';
import { documentOf } from './document.js';
import { openapiFile } from './openapi.controller.js';

@Controller('admin/new')
class NewController {
  @Get()
  get(): string {
    return '';
  }
}

describe('the description of management', () => {
  const all = [...ADMIN_CONTROLLERS, QueueController];

  it('is what the controllers say: after a change run node dist/apps/api/src/admin/openapi/generate.js', () => {
    const committed = JSON.parse(readFileSync(openapiFile(), 'utf8')) as { info: { version: string } };
    expect(JSON.parse(JSON.stringify(documentOf(all, committed.info.version)))).toEqual(committed);
  });

  it('is not made of a route without a description, or of a description without a route', () => {
    expect(() => documentOf([...all, NewController], '1')).toThrow(
      /without a description: GET \/admin\/new\./,
    );
    expect(() => documentOf(all.slice(1), '1')).toThrow(/Descriptions without a route: GET \/admin\//);
  });

  it('has the parameters and bodies that are checked', () => {
    const { paths } = documentOf(all, '1');
    expect(paths['/admin/calls']?.['get']?.parameters).toContainEqual({
      name: 'outcome',
      in: 'query',
      required: false,
      schema: { type: 'string', enum: ['completed', 'failed', 'abandoned', 'refused', 'running'] },
    });
    expect(paths['/admin/calls']?.['get']?.parameters).toContainEqual({
      name: 'limit',
      in: 'query',
      required: false,
      schema: { type: 'integer', minimum: 1, maximum: 500, default: 50 },
    });
    const body = JSON.stringify(paths['/admin/operator/actions']?.['post']?.requestBody);
    expect(body).toContain('"required":["action"]');
    expect(paths['/admin/operator/actions']?.['post']?.responses).toHaveProperty('202');
  });

  it('is shown by a page that names no other server', () => {
    expect(DOCS_PAGE).not.toMatch(/https?:|src=|@import/);
  });
});
