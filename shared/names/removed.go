package names

// Removed is the error with which make destroy stops executions. The sweep continues their work after the next deployment, while an
// execution that an operator stopped waits for the operator.
const Removed = "DroverRemoved"
