/** The messages of `schema/agent-line.proto` as proto-loader gives them (keepCase off, longs as numbers). */
export interface FromAgent {
  hello?: { workerId: string; name: string; bootId: string; agentVersion: string };
  heartbeat?: { at: string };
  progress?: { residentId: string; phase: string; fraction: number; elapsedSeconds: number };
  projected?: { requestId: string; ok: boolean; error: string; revision: number };
  readings?: {
    at: string;
    devices: {
      deviceId: string;
      totalBytes: number;
      usedBytes: number;
      foreignBytes: number;
      known: boolean;
    }[];
    cpuBusyCores: number;
  };
  drainAsked?: { residentId: string };
  neighbours?: { apis?: number };
  share?: { residentId: string; slots?: number; number?: number; wanted?: boolean };
}

export interface FromApi {
  welcome?: { apiId: string };
  heartbeat?: { at: string };
  drained?: { residentId: string; sinceRevision?: number };
  slots?: { residentId: string; holds?: number; waiting?: number; of?: number; number?: number };
  serving?: { residentId: string; serves?: boolean };
  project?: { requestId: string; modelKey: string; artifact: string; contractJson: string };
}
