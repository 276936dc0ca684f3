package tide

func Level(hour int) float64 {
	levels := []float64{1.2, 1.9, 2.4
	}
	return levels[hour%len(levels)]
}
