export interface Line {
  cents: number;
  count: number;
}
export declare function total(lines: Line[]): number;
