import {
  ArrayMaxSize,
  ArrayNotEmpty,
  IsArray,
  IsIn,
  IsISO8601,
  IsOptional,
  IsString,
  Length,
} from 'class-validator';

export class CreateKey {
  /** What it is for, as a person says it. */
  @IsString()
  @Length(1, 200)
  name!: string;

  @IsOptional()
  @IsIn(['use', 'admin'])
  scope?: 'use' | 'admin';

  @IsOptional()
  @IsISO8601({ strict: true })
  expiresAt?: string;

  /** Keys of the only models that it opens. */
  @IsOptional()
  @IsArray()
  @ArrayNotEmpty()
  @ArrayMaxSize(100)
  @IsString({ each: true })
  @Length(1, 500, { each: true })
  models?: string[];
}
