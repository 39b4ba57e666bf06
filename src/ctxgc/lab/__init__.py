"""The lab: recorded agent runs replayed through pruning policies, priced and judged without a model."""
