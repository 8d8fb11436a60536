/** How an action ended: a sentence with its figures. */
export interface ActionEnd {
  readonly state: 'done' | 'failed';
  readonly result: string;
}

export const done = (result: string): ActionEnd => ({ state: 'done', result });
export const failed = (result: string): ActionEnd => ({ state: 'failed', result });
