// Package metrics prints CloudWatch metrics as log lines in the Embedded Metric Format: no call, no permission.
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

// Count prints a metric that counts one, by one dimension.
func Count(w io.Writer, now time.Time, metric, dimension, value string) error {
	line, err := json.Marshal(map[string]any{
		"_aws": map[string]any{
			"Timestamp": now.UnixMilli(),
			"CloudWatchMetrics": []any{map[string]any{
				"Namespace": Namespace, "Dimensions": []any{[]string{dimension}},
				"Metrics": []any{map[string]string{"Name": metric, "Unit": "Count"}},
			}},
		},
		dimension: value, metric: 1,
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", line)
	return err
}
