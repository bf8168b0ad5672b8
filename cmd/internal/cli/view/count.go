package view

import "fmt"

// Count of things, by the name of one: "1 node", "2 nodes".
func Count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
