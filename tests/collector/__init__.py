"""Tests of the room that collects for the price alone."""
