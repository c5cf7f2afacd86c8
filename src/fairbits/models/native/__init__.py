"""Native networks: dense layers as plain arrays, and the steps that lead to and from them."""
