// SPDX-License-Identifier: GPL-3.0-only

// Package rle counts runs of equal bytes.
package rle

// Runs returns the lengths of the runs.
func Runs(data []byte) []int {
	var runs []int
	for i, b := range data {
		if i > 0 && data[i-1] == b {
			runs[len(runs)-1]++
			continue
		}
		runs = append(runs, 1)
	}
	return runs
}
