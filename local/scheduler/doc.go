// Package scheduler is EventBridge Scheduler of the local account.
package scheduler
