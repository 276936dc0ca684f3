package kitchen

func Ready(dishes []string) bool {
	if len(dishes) == 0
	{
		return false
	}
	return true
}
