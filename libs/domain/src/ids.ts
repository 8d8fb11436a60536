/** Branded ids: strings at run time, told apart by the compiler. Made at the edges (libs/events/ids), parsed here. */
type Brand<Name extends string> = string & { readonly __brand: Name };

/** Names one machine; stable for the life of its BERTH_HOME. UUIDv7. */
export type WorkerId = Brand<'WorkerId'>;
/** What a call names, in canonical form: `owner/repo`, or a short name. */
export type ModelKey = Brand<'ModelKey'>;
/** One engine process with one model loaded. UUIDv7, given by the decision that places it. */
export type ResidentId = Brand<'ResidentId'>;
export type DecisionId = Brand<'DecisionId'>;
export type CallId = Brand<'CallId'>;
/** One api process start. */
export type ApiId = Brand<'ApiId'>;
/** `ram`, or the stable id of an accelerator (its UUID, as the driver gives it). */
export type DeviceId = Brand<'DeviceId'>;

export const workerId = (value: string): WorkerId => value as WorkerId;
export const modelKey = (value: string): ModelKey => value as ModelKey;
export const residentId = (value: string): ResidentId => value as ResidentId;
export const decisionId = (value: string): DecisionId => value as DecisionId;
export const callId = (value: string): CallId => value as CallId;
export const apiId = (value: string): ApiId => value as ApiId;
export const deviceId = (value: string): DeviceId => value as DeviceId;

/** Host memory, as a device among the others. */
export const RAM: DeviceId = deviceId('ram');
/** What models take in Berth's own folder of them, as a resource that is limited; nothing is placed on it. */
export const DISK: DeviceId = deviceId('disk');

/** Calls that resolve to no model are kept under this key, so that no caller can name a stream. */
export const UNRESOLVED: ModelKey = modelKey('~unresolved');
