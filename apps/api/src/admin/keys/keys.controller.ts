import {
  Body,
  Controller,
  Delete,
  Get,
  Header,
  HttpCode,
  Inject,
  Param,
  Post,
  Query,
  UsePipes,
} from '@nestjs/common';
import { By } from '../access/admin.guard.js';
import { ListQuery } from '../paging/list-query.dto.js';
import { type Page, pageOf } from '../paging/page.js';
import { queryPipe } from '../problem/query-pipe.js';
import { present } from '../views/present.js';
import { CreateKey } from './keys.dto.js';
import { type KeyRow, KeysRepository } from './keys.repository.js';
import { type CreatedKey, KeysService } from './keys.service.js';

const keyView = (row: KeyRow) =>
  present({
    keyId: row.key_id,
    name: row.name,
    scope: row.scope,
    issuedAt: row.issued_at,
    expiresAt: row.expires_at,
    revokedAt: row.revoked_at,
    revokedBy: row.revoked_by,
  });

@Controller('admin/keys')
@UsePipes(queryPipe())
export class KeysController {
  readonly #keys: KeysRepository;
  readonly #service: KeysService;

  constructor(@Inject(KeysRepository) keys: KeysRepository, @Inject(KeysService) service: KeysService) {
    this.#keys = keys;
    this.#service = service;
  }

  @Get()
  async list(@Query() query: ListQuery): Promise<Page<ReturnType<typeof keyView>>> {
    return pageOf(await this.#keys.page(query), query.limit, (row) => [row.position], keyView);
  }

  @Post()
  @Header('cache-control', 'no-store')
  create(@Body() asked: CreateKey): Promise<CreatedKey> {
    return this.#service.create(asked);
  }

  @Delete(':id')
  revoke(@Param('id') id: string, @By() by: string) {
    return this.#service.revoke(id, by);
  }

  @Post(':id/revoke')
  @HttpCode(200)
  revokeByPost(@Param('id') id: string, @By() by: string) {
    return this.#service.revoke(id, by);
  }
}
