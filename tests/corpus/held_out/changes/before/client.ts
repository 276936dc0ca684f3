export interface Options {
  retries?: number;
}

export function connect(url: string, options: Options = {}): string {
  return `${url}#${options.retries ?? 3}`;
}

export function close(handle: string): boolean {
  return handle.length > 0;
}
