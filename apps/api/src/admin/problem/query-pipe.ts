import { ValidationPipe } from '@nestjs/common';
import { BerthFailure, berthError } from '#domain/errors.js';

/** Checks a query against its DTO; an unknown or malformed field is refused with its name. */
export const queryPipe = (): ValidationPipe =>
  new ValidationPipe({
    transform: true,
    whitelist: true,
    forbidNonWhitelisted: true,
    validationError: { target: false, value: false },
    exceptionFactory: (errors: readonly FieldError[]) => new BerthFailure(refusalOf(errors)),
  });

/** The part of class-validator's error that is looked at. */
interface FieldError {
  readonly property: string;
  readonly constraints?: Readonly<Record<string, string>>;
}

function refusalOf(errors: readonly FieldError[]) {
  const [first] = errors;
  const sentences = errors.flatMap((error) => Object.values(error.constraints ?? {}));
  return berthError('invalid_request', `${sentences.join('; ') || 'The query is malformed'}.`, {
    ...(first ? { param: first.property } : {}),
  });
}
