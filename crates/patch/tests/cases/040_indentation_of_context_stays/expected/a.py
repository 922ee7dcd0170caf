	if x:
		b()
	return
