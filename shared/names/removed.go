package names

// Removed is the error with which make destroy stops executions. The sweep continues their work after the next deployment. Until then
// drover ignores the events of their ends.
const Removed = "DroverRemoved"
