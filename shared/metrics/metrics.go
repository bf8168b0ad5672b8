// Package metrics writes CloudWatch metrics as log lines in the Embedded Metric Format. That needs no API call and no permission.
// Functions use it.
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
package metrics

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Namespace of drover's metrics.
const Namespace = "drover"

// Count writes a metric with the value one and one dimension.
func Count(w io.Writer, now time.Time, metric, dimension, value string) error {
	return put(w, now, metric, "Count", 1, dimension, value)
}

// Took writes a duration in seconds with one dimension.
func Took(w io.Writer, now time.Time, metric string, took time.Duration, dimension, value string) error {
	return put(w, now, metric, "Seconds", took.Seconds(), dimension, value)
}

func put(w io.Writer, now time.Time, metric, unit string, amount float64, dimension, value string) error {
	line, err := json.Marshal(map[string]any{
		"_aws": map[string]any{
			"Timestamp": now.UnixMilli(),
			"CloudWatchMetrics": []any{map[string]any{
				"Namespace": Namespace, "Dimensions": []any{[]string{dimension}},
				"Metrics": []any{map[string]string{"Name": metric, "Unit": unit}},
			}},
		},
		dimension: value, metric: amount,
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", line)
	return err
}
