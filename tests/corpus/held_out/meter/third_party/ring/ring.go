// SPDX-License-Identifier: MIT

// Package ring keeps the last readings.
package ring

// Ring holds at most a fixed number of values.
type Ring struct {
	values []float64
	limit  int
}

// New returns an empty ring.
func New(limit int) *Ring {
	return &Ring{limit: max(limit, 1)}
}

// Push adds a value and forgets the oldest one when the ring is full.
func (r *Ring) Push(value float64) {
	r.values = append(r.values, value)
	if len(r.values) > r.limit {
		r.values = r.values[1:]
	}
}
