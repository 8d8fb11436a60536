import { IsInt, IsObject, IsOptional, Min } from 'class-validator';

export class ChangeSettings {
  /** Values by name; null takes one back, so that it is inherited. */
  @IsObject()
  values!: Record<string, unknown>;

  /** The `revision` that was read: refused when somebody changed the scope since. `If-Match` says the same. */
  @IsOptional()
  @IsInt()
  @Min(-1)
  revision?: number;
}
