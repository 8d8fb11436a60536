import { Type } from 'class-transformer';
import {
  ArrayMaxSize,
  IsArray,
  IsBoolean,
  IsInt,
  IsISO8601,
  IsObject,
  IsOptional,
  IsString,
  Max,
  MaxLength,
  Min,
  MinLength,
  ValidateNested,
} from 'class-validator';
import type { WhatIfRequest } from '#domain/wire/index.js';

const MOST_BYTES = 2 ** 50;

export class DeviceChange {
  /** The id of a card, or a part of its name. */
  @IsString()
  @MinLength(1)
  @MaxLength(100)
  name!: string;

  @IsInt()
  @Min(1)
  @Max(MOST_BYTES)
  bytes!: number;
}

export class AskWhatIf implements WhatIfRequest {
  /** ISO times; the last 24 hours when left out. */
  @IsOptional()
  @IsISO8601({ strict: true })
  from?: string;

  @IsOptional()
  @IsISO8601({ strict: true })
  to?: string;

  @IsOptional()
  @IsInt()
  @Min(1)
  @Max(MOST_BYTES)
  ramMaxBytes?: number;

  @IsOptional()
  @IsInt()
  @Min(1)
  @Max(MOST_BYTES)
  vramMaxBytes?: number;

  @IsOptional()
  @IsArray()
  @ArrayMaxSize(16)
  @ValidateNested({ each: true })
  @Type(() => DeviceChange)
  devices?: DeviceChange[];

  /** Each a copy of the first. */
  @IsOptional()
  @IsInt()
  @Min(0)
  @Max(16)
  moreWorkers?: number;

  /** Placement settings by name. */
  @IsOptional()
  @IsObject()
  settings?: Record<string, unknown>;

  /** False: the least loading possible is not computed. */
  @IsOptional()
  @IsBoolean()
  bound?: boolean;
}
