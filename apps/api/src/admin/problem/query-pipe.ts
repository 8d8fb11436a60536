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
  /** Of what lies in it. */
  readonly children?: readonly FieldError[];
}

interface Fault {
  /** `devices.0.bytes` */
  readonly field: string;
  readonly sentence: string;
}

function refusalOf(errors: readonly FieldError[]) {
  const faults = errors.flatMap((error) => faultsOf(error, ''));
  const [first] = faults;
  const sentences = faults.map(({ sentence }) => sentence);
  return berthError('invalid_request', `${sentences.join('; ') || 'The query is malformed'}.`, {
    ...(first ? { param: first.field } : {}),
  });
}

/** A sentence begins with the name of its own field: what that lies in is put before it. */
function faultsOf({ property, constraints, children = [] }: FieldError, within: string): readonly Fault[] {
  const field = `${within}${property}`;
  return [
    ...Object.entries(constraints ?? {}).map(([kind, text]) => ({
      field,
      sentence: kind === 'whitelistValidation' ? `${field} is not a field of it` : `${within}${text}`,
    })),
    ...children.flatMap((child) => faultsOf(child, `${field}.`)),
  ];
}
