module readers

go 1.24
