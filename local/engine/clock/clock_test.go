package clock

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWorked(t *testing.T) {
	for name, c := range map[string]struct {
		speed      float64
		real, want time.Duration
	}{
		"real time":                     {0, time.Minute, time.Minute},
		"faster":                        {300, time.Second, 5 * time.Minute},
		"since the zero Time":           {0, time.Now().Sub(time.Time{}), math.MaxInt64},
		"since the zero Time, faster":   {300, time.Now().Sub(time.Time{}), math.MaxInt64},
		"before a time that will come":  {300, -time.Second, -5 * time.Minute},
		"nothing, however fast time is": {300, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, (&Clock{Speed: c.speed}).Worked(c.real))
		})
	}
}
