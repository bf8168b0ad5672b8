package view

import "fmt"

// Count formats a number with a noun in the singular or plural: "1 node", "2 nodes".
func Count(n int, singular string) string {
	if n == 1 {
		return "1 " + singular
	}
	return fmt.Sprintf("%d %ss", n, singular)
}
