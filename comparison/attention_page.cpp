namespace zoo {}
