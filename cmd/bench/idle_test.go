package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIdleResourcesArePriced(t *testing.T) {
	dollars, what, alarms, err := priceStanding([]byte(`{"Resources": {
		"a": {"Type": "AWS::CloudWatch::Alarm"}, "b": {"Type": "AWS::CloudWatch::Alarm"}, "k": {"Type": "AWS::KMS::Key"},
		"f": {"Type": "AWS::Lambda::Function"}, "d": {"Type": "AWS::CloudWatch::Dashboard"}}}`))
	require.NoError(t, err)
	require.InDelta(t, 4.20, dollars, 1e-9)
	require.Equal(t, "1 Dashboard, 1 Key, 2 Alarm", what)
	require.Equal(t, 2, alarms)
	_, _, _, err = priceStanding([]byte("Resources:"))
	require.Error(t, err)
}
