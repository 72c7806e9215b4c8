"""LSTM, GRU and RNN: a launch for each wave of steps that do not wait for one another, over layers or over directions."""
