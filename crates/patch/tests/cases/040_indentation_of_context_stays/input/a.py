	if x:
		a()
	return
