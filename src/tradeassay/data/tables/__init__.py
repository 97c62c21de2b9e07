"""Tables of users: bars, layouts of other projects, accounts. One reader; guesses are shown, faults located."""
