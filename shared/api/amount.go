package api

// Amounts: numbers of nodes, or percentages of them.

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Amount is a whole number such as 2, or a percentage such as 25%.
type Amount string

// AmountPattern is the pattern of an amount as text. Files contain numbers as numbers.
const AmountPattern = `^(0|[1-9][0-9]{0,3}|([0-9]|[1-9][0-9]|100)%)$`

var amountPattern = regexp.MustCompile(AmountPattern)

const amountMeans = `must be a number up to 9999 or a percentage up to 100%, such as 2 or "25%"`

// Percent returns the number of a percentage.
func (a Amount) Percent() (percent int, ok bool) {
	text, ok := strings.CutSuffix(string(a), "%")
	if !ok {
		return 0, false
	}
	percent, _ = strconv.Atoi(text)
	return percent, true
}

// Of returns the amount for a whole. Percentages are rounded up or down.
func (a Amount) Of(whole int, up bool) int {
	percent, ok := a.Percent()
	switch {
	case !ok:
		n, _ := strconv.Atoi(string(a))
		return n
	case up:
		return (whole*percent + 99) / 100
	}
	return whole * percent / 100
}

// None reports whether the amount is 0 for every whole.
func (a Amount) None() bool { return a == "0" || a == "0%" }

// Bounds returns how many nodes fewer and more than desired a pool may have while its nodes are replaced. The surge is at most the number
// of nodes to replace: further nodes would be started only to be terminated, and one that did not join would fail the update.
func (u Update) Bounds(desired int) (unavailable, surge int) {
	unavailable, surge = u.MaxUnavailable.Of(desired, false), u.MaxSurge.Of(desired, true)
	if unavailable == 0 && surge == 0 {
		surge = 1 // a percentage of few nodes may round to 0
	}
	return min(unavailable, desired), min(surge, max(1, desired))
}

// MarshalJSON writes an amount like files do: a number, or a percentage in quotes.
func (a Amount) MarshalJSON() ([]byte, error) {
	if _, percentage := a.Percent(); percentage || a == "" {
		return json.Marshal(string(a))
	}
	return []byte(a), nil
}

// UnmarshalJSON reads a number or a percentage.
func (a *Amount) UnmarshalJSON(body []byte) error {
	text := string(body)
	if strings.HasPrefix(text, `"`) {
		if err := json.Unmarshal(body, &text); err != nil {
			return err
		}
	}
	if text != "" && !amountPattern.MatchString(text) {
		return fmt.Errorf("%s %s", body, amountMeans)
	}
	*a = Amount(text)
	return nil
}
